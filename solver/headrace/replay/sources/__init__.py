"""Where history comes from: ranges of Kafka's topics, and exported files. One adapter a file."""
