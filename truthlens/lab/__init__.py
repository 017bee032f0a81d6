"""The model workshop: labelled data, training, export, calibration, evaluation.

Serving imports none of it.
"""
