"""The OpenAPI description: texts, examples, and a plain page made from it."""
