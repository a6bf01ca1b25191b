"""The course office: courses, their exchange and learners' editions, learners, work and grades, reports.

It uses `mathllm_grading`, which knows nothing of it.
"""
