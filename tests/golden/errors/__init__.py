"""What common mistakes are told: each program, our message, and facts about JAX's."""
