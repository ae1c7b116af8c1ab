"""Times a call as bench/contest.cc does: the fastest stretch of a turn, for other load can only add to a time. On one
thread by the processor time of the process, which stands still while another has the core."""
import time

TURN_SECONDS = 0.02
STRETCH_SECONDS = 1e-3


def fastest_seconds(work, threads):
    clock = time.process_time if threads == 1 else time.perf_counter

    def seconds_of(calls):
        begin = clock()
        for _ in range(calls):
            work()
        return (clock() - begin) / calls

    work()
    guess = seconds_of(1)
    if guess > 10 * TURN_SECONDS:
        return min(guess, seconds_of(1))
    calls = max(1, int(STRETCH_SECONDS / guess))
    fastest, begin = guess, clock()
    while clock() - begin < TURN_SECONDS:
        fastest = min(fastest, seconds_of(calls))
    return fastest
