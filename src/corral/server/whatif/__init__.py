"""What-if: simulations, the shadow policy and the past."""
