"""Is the criterion met? Questions about numbers of lesions, and the probability that the answer is yes."""

from lesioncount.questions.probability import probability_of
from lesioncount.questions.question import QUESTIONS, NamedQuestion, Question
from lesioncount.questions.trials import ExtraLesions, Trials

__all__ = ["QUESTIONS", "ExtraLesions", "NamedQuestion", "Question", "Trials", "probability_of"]
