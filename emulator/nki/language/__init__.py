"""`nki.language`: arithmetic on tiles, memory, loops, launch queries; each call becomes one or more instructions."""
