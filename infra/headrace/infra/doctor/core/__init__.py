"""What a doctor knows and how it judges. Pure: no broker, no clock."""
