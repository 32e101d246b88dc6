"""From a bundle to a verified image: render -> context -> build -> smoke -> push."""
