"""The instructor's side: the trusted grader of nbgrader submissions, its sandbox, and the course around it.

It judges with the exercises of `mathllm_exercises`, which learners have. Its commands: `python -m mathllm_grading`.
"""
