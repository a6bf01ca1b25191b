"""How does a model that can continue any text learn to give the answer one hoped for?

First it is shown good answers, then it is told which of two is better, and at last it is rewarded, on a leash that
keeps it near what it was. Each step is a loss of a line or two; this chapter holds them all.

    fine_tuning.py      supervised fine-tuning, and through thin matrices (LoRA)
    preferences.py      reward models, DPO, IPO, KTO
    policy_gradient.py  advantages, PPO, GRPO, and the optimum under a KL penalty
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
