"""The parts of a unit of work: each collects the changes of one kind of row until the transaction is written."""
