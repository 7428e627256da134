"""`headrace signals publish`: reads one endpoint of metrics, again and again, and publishes what it says."""
