"""What operators say: drains, freezes and pins; judged by rules, told, published and taken back."""
