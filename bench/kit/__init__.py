"""What the benches share: rounds in turns, tables, the programs and policies that they measure."""
