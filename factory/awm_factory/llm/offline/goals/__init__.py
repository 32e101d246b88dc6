"""Goals: what tasks may be about, derived from the domain model alone; one file a kind. `plan.py` draws from them."""
