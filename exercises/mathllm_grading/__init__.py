"""The instructor's side: the trusted grader of nbgrader submissions, and its sandbox.

It judges with the exercises of `mathllm_exercises`, which learners have, too. The commands are those of
`python -m mathllm_grading`.
"""
