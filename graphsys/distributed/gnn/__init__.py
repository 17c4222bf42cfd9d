"""Networks trained on a cluster: one trainer in many processes, which gloo joins."""
