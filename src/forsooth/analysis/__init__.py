"""What a person does with finished runs: take a part, compare, export, look at maps, read cards, ask if all is well."""
