"""Thin files that put the count loss and the count into the frameworks people train and predict with."""
