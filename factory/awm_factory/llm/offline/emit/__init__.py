"""The artifacts of a domain, printed: schema, data, API and code."""
