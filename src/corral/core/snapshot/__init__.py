"""The cluster snapshot: the state that a decision is made from, its changes and its journal."""
