"""How does a model that can continue any text learn to give helpful answers?

First it is trained on examples of good answers. Then people say which of two answers is better, and the model learns
from these preferences: by way of a reward model and reinforcement learning, or directly. A KL penalty keeps it close to
the model that it started from. Each step is a loss of a line or two; this chapter contains these losses.

    fine_tuning.py      supervised fine-tuning, and low-rank adapters (LoRA)
    preferences.py      losses for preferences: reward models, DPO, IPO, KTO
    policy_gradient.py  advantages, PPO, GRPO, and the optimal policy under a KL penalty
"""

# What the modules define, written by tools/build_exports.py
from .fine_tuning import completion_labels, completion_log_probabilities, lora_adapters, with_adapters
from .policy_gradient import advantages, clipped_surrogate, group_advantages, grpo_loss, kl_estimate, kl_optimal_policy
from .preferences import bradley_terry_loss, dpo_loss, ipo_loss, kto_loss

__all__ = [
    "advantages", "bradley_terry_loss", "clipped_surrogate", "completion_labels", "completion_log_probabilities",
    "dpo_loss", "group_advantages", "grpo_loss", "ipo_loss", "kl_estimate", "kl_optimal_policy", "kto_loss",
    "lora_adapters", "with_adapters",
]  # fmt: skip
