"""The offline author: a Model that is no language model. It composes typed modules into a domain and writes the artifacts."""
