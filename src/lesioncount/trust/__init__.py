"""How far a count can be trusted, in numbers: calibration and its fit, guaranteed intervals, scores."""
