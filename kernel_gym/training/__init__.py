"""Training of policies on rewards from the gym: corpus, SFT, GRPO and assessment."""
