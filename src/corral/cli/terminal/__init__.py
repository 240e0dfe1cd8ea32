"""The parts that all commands share: output formats, tables, failures, keyboard, and the generated reference."""
