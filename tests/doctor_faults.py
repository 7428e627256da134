"""Every planted fault, one table for all tests of the doctor: how each is planted, and what has to be said of it.

Each by itself is the only thing wrong with a system that is otherwise healthy.
"""

from doctor_faults_load import LOAD
from doctor_faults_signals import SIGNALS
from doctor_faults_topics import TOPICS
from doctor_faults_weights import WRITTEN
from doctor_planted import Planted

PLANTED: tuple[Planted, ...] = (*TOPICS, *SIGNALS, *WRITTEN, *LOAD)
