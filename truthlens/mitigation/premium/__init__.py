"""Mode premium: a panel of models, a judge, and the consensus mechanisms."""
