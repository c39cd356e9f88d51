"""Other people's models, arrays and methods, adapted to what the house speaks: tensors and records."""
