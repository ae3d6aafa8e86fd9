package run

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// A seal ends an archive file before a line of a block. The owner says when, because only it has the checkpoint (R8).
type seal struct {
	line      int // index in the block; the number of its lines for its end
	partition int32
	next      int64 // offset behind the last record before it
	at        meter.Checkpoint
}

// An archiver writes blocks to the archive, each partition in one goroutine of its own share.
type archiver struct {
	shards []*shard
	mu     struct {
		sync.Mutex
		heads map[int32]meter.ArchiveHead // published
		files int64
		err   error
	}
	failed chan struct{} // closed with the first error
}

// A shard owns the writers of some partitions.
type shard struct {
	archiver *archiver
	config   archive.Config
	number   int
	outlets  map[int32]*outlet
	waiting  []*outlet // those that have something to write of the block at hand
	meta     *archive.Meta
	in       chan archiveJob
}

// An outlet is where a partition's records go: its writer, and the records of the block at hand that wait for it, because
// a writer takes many at once much faster than one by one.
type outlet struct {
	writer  *archive.Writer
	waiting []archive.Entry
}

// flush writes what waits.
func (o *outlet) flush() error {
	err := o.writer.AppendAll(o.waiting)
	clear(o.waiting)
	o.waiting = o.waiting[:0]
	return err
}

// An archiveJob is a block to write; or, without a block, seals alone. done is closed when it is written.
type archiveJob struct {
	block *block
	seals []seal
	done  *sync.WaitGroup
}

// blocksAhead bounds what waits for a shard.
const blocksAhead = 2

// newArchiver makes an archiver of shards that write as config says. Before the first record of a partition is sent,
// adopt has to say where it goes on.
func newArchiver(c archive.Config, shards int) *archiver {
	a := &archiver{failed: make(chan struct{})}
	a.mu.heads = map[int32]meter.ArchiveHead{}
	for i := range shards {
		a.shards = append(a.shards, &shard{archiver: a, config: c, number: i, outlets: map[int32]*outlet{},
			meta: archive.NewMeta(c.FS), in: make(chan archiveJob, blocksAhead)})
	}
	return a
}

// start runs the shards until close.
func (a *archiver) start(group *sync.WaitGroup, recycle func(*block)) {
	for _, s := range a.shards {
		group.Go(func() { s.run(recycle) })
	}
}

// close lets the shards end once they have done what was sent to them. What is not published is thrown away.
func (a *archiver) close() {
	for _, s := range a.shards {
		close(s.in)
	}
}

// write hands a block to every shard; the last one recycles it. It returns the archiver's error if it has failed.
func (a *archiver) write(b *block) error { return a.send(archiveJob{block: b, seals: b.seals}) }

func (a *archiver) send(j archiveJob) error {
	for _, s := range a.shards {
		select {
		case s.in <- j:
		case <-a.failed:
			return a.err()
		}
	}
	return nil
}

// seal ends files outside of a block and waits until they are published.
func (a *archiver) seal(seals []seal) error {
	var done sync.WaitGroup
	done.Add(len(a.shards))
	if err := a.send(archiveJob{seals: seals, done: &done}); err != nil {
		return err
	}
	done.Wait()
	return a.err()
}

func (a *archiver) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.err
}

func (a *archiver) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.err == nil {
		a.mu.err = err
		close(a.failed)
	}
}

// published is the head of a partition as of its last published file.
func (a *archiver) published(p int32) (meter.ArchiveHead, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	head, ok := a.mu.heads[p]
	return head, ok
}

func (a *archiver) files() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.files
}

// adopt says where a partition goes on before its first record is sent.
func (a *archiver) adopt(p int32, head meter.ArchiveHead) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.heads[p] = head
}

// run does the jobs; after a failure it only lets them pass.
func (s *shard) run(recycle func(*block)) {
	for j := range s.in {
		if s.archiver.err() == nil {
			if err := s.do(j); err != nil {
				s.archiver.fail(err)
			}
		}
		if j.block != nil {
			recycle(j.block)
		}
		if j.done != nil {
			j.done.Done()
		}
	}
	for _, p := range s.partitions() {
		s.outlets[p].writer.Abort() // of what is not published nothing is promised
	}
}

func (s *shard) partitions() []int32 {
	var list []int32
	for p := range s.outlets {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

func (s *shard) owns(p int32) bool { return int(p)%len(s.archiver.shards) == s.number }

func (s *shard) do(j archiveJob) error {
	seals := j.seals // ordered by line, as the owner wrote them
	if j.block != nil {
		for i := range j.block.lines {
			for ; len(seals) > 0 && seals[0].line <= i; seals = seals[1:] {
				if err := s.seal(seals[0]); err != nil {
					return err
				}
			}
			if err := s.take(&j.block.lines[i], j.block, i); err != nil {
				return err
			}
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
	for _, one := range seals {
		if err := s.seal(one); err != nil {
			return err
		}
	}
	return nil
}

// take has a line's record wait for its writer.
func (s *shard) take(line *trace.Line, b *block, i int) error {
	p := line.Record.Partition
	if line.Idle != nil || b.silent[i] || !s.owns(p) {
		return nil
	}
	o, err := s.outlet(p)
	if err != nil {
		return err
	}
	if len(o.waiting) == 0 {
		s.waiting = append(s.waiting, o)
	}
	o.waiting = append(o.waiting, archive.Entry{Record: &line.Record, Event: &b.events[i], PriorMaxReach: b.priors[i]})
	return nil
}

// flush writes what waits, so that the block is free.
func (s *shard) flush() error {
	for _, o := range s.waiting {
		if err := o.flush(); err != nil {
			return err
		}
	}
	s.waiting = s.waiting[:0]
	return nil
}

func (s *shard) outlet(p int32) (*outlet, error) {
	if o := s.outlets[p]; o != nil {
		return o, nil
	}
	head, ok := s.archiver.published(p)
	if !ok {
		return nil, fmt.Errorf("run: archive partition %d: nobody said where it begins", p)
	}
	config := s.config
	config.Partition = p
	w, err := archive.NewWriter(config, head)
	if err != nil {
		return nil, err
	}
	o := &outlet{writer: w}
	s.outlets[p] = o
	return o, nil
}

// seal closes and publishes a file, and keeps the new end of the chain beside it.
func (s *shard) seal(one seal) error {
	o := s.outlets[one.partition]
	if o == nil {
		return nil
	}
	w := o.writer
	if err := o.flush(); err != nil || w.Rows() == 0 {
		return err
	}
	if err := w.Seal(one.next, one.at); err != nil {
		return err
	}
	head, err := w.Publish()
	if taken := (*archive.TakenError)(nil); errors.As(err, &taken) {
		return fmt.Errorf("%w: another process archives the same log; stop one of the two and start again", err)
	}
	if err != nil {
		return err
	}
	source := archive.Source{Topic: s.config.Topic, Partition: one.partition}
	if err := s.meta.PutHead(source, head); err != nil {
		return err
	}
	a := s.archiver
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.heads[one.partition] = head
	a.mu.files++
	return nil
}
