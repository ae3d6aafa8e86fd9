package meter

import "fmt"

// A Summary counts records by the bucket in which they end (R14), over the whole log so far.
// Abandoned and Superseded count requests, beside the sum.
type Summary struct {
	Read           int64
	DeadLetter     [reasonEnd]int64 // by Reason
	Tombstone      int64
	Ignored        int64
	Tick           int64
	Event          int64
	Progress       int64
	Counted        int64
	Filtered       int64
	Late           int64
	Duplicate      int64
	Conflict       int64
	Orphan         int64
	LateCompletion int64
	Open           int64
	Abandoned      int64
	Superseded     int64
}

// DeadLetters is the sum over all reasons.
func (s *Summary) DeadLetters() int64 {
	var n int64
	for _, c := range s.DeadLetter {
		n += c
	}
	return n
}

// Check returns an error unless the buckets add up (R14).
func (s *Summary) Check() error {
	if sum := s.DeadLetters() + s.Tombstone + s.Ignored + s.Tick + s.Event; sum != s.Read {
		return fmt.Errorf("R14: %d records were read, %d are in buckets", s.Read, sum)
	}
	sum := s.Progress + s.Counted + s.Filtered + s.Late + s.Duplicate + s.Conflict + s.Orphan + s.LateCompletion + s.Open
	if sum != s.Event {
		return fmt.Errorf("R14: %d events were admitted, %d have a verdict", s.Event, sum)
	}
	return nil
}

// Add adds t to s.
func (s *Summary) Add(t *Summary) {
	s.Read += t.Read
	for i := range s.DeadLetter {
		s.DeadLetter[i] += t.DeadLetter[i]
	}
	s.Tombstone += t.Tombstone
	s.Ignored += t.Ignored
	s.Tick += t.Tick
	s.Event += t.Event
	s.Progress += t.Progress
	s.Counted += t.Counted
	s.Filtered += t.Filtered
	s.Late += t.Late
	s.Duplicate += t.Duplicate
	s.Conflict += t.Conflict
	s.Orphan += t.Orphan
	s.LateCompletion += t.LateCompletion
	s.Open += t.Open
	s.Abandoned += t.Abandoned
	s.Superseded += t.Superseded
}
