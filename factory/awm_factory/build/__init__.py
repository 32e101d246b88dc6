"""The main job: import -> check -> certify -> render -> build -> smoke -> catalogue."""
