"""Common mistakes: each program, our error message, and facts about JAX's."""
