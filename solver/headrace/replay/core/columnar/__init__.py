"""Many engine signals at once: read from Avro and folded as columns, to the same values as one by one.

What is regular goes through arrays; whatever is not is left to the live fold, key by key.
"""
