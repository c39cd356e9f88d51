"""The smallest run of xaitris that still trains, explains and scores."""

ONLY = {"scenario": "LIN", "background": "WHITE", "model": "llr,mlp"}
SETTINGS = {"n": 600, "alpha": 0.6, "samples": 6, "sweep": (), "trainings": 1}
METHODS = ("saliency", "lime_25", "random", "oracle")
