package diff

// advice is, for each cause, what it means and what to do; docs/audit.md has the same words with their rules.
var advice = [...][2]string{
	Late:                   {"one side judged it too late for its window", "charge it on the next invoice; if there are many, raise allowed_lateness"},
	DuplicateCounted:       {"a side without ids counted a copy", "correct that side; give the producer an id"},
	DuplicateBeyondHorizon: {"a copy came after its id was forgotten, and was billed again", "credit it; find out who resends after so long"},
	Conflict:               {"one id, two payloads: one is billed, the other reported", "ask the producer which is right"},
	AbandonedThenCompleted: {"billed as abandoned; its end came too late to take that place", "charge the difference"},
	Orphan:                 {"an end whose start never came", "find the lost start"},
	SplitAcrossPartitions:  {"records of one id in several partitions", "key by id"},
	DeadLetter:             {"one side could not read it", "mend the producer; its bytes are kept"},
	Filtered:               {"a filter took it out", "nothing, or mend the filter"},
	ListPrice:              {"the list price was used, for want of a rate", "add the rate, re-rate"},
	RateRevision:           {"the two sides used different rates", "find out which revision is right"},
	Unpriced:               {"no rate at all: counted, not billed", "add the rate"},
	Adjustment:             {"one side has the final row without its adjustments", "add them"},
	MissingInArchive:       {"the archive lacks what the ledger counted", "restore the file; archive verify names it"},
	MissingInStream:        {"the other side has a record that is nowhere in our log", "it never arrived: ask for it"},
	LostRange:              {"log positions that were lost and accepted as lost", "decide, then --allow-lost"},
	Overflow:               {"an amount leaves 64 bits, one side clamped it", "read the exact text"},
	LedgerBroken:           {"the ledger contradicts itself: something else than the stream changed it", "bring it back from a copy, or count the log anew"},
	MeterMismatch:          {"the sides are of different meters, nothing else explains it", "compare the meter files"},
	Unexplained:            {"none of the known causes: the text says what is known", "do not send the bill"},
}

// Meaning says in a few words why rows differ that have this cause.
func (c Cause) Meaning() string { return advice[c][0] }

// Advice says what to do about it.
func (c Cause) Advice() string { return advice[c][1] }
