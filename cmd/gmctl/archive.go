package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

func (a *app) archive() *cobra.Command {
	cmd := &cobra.Command{Use: "archive", GroupID: groupAudit, Short: "List the archive, or prove it complete",
		Example: "  gmctl archive list\n  gmctl archive verify"}
	cmd.AddCommand(a.archiveVerify(), a.archiveList())
	return cmd
}

func (a *app) archiveList() *cobra.Command {
	var format rowFormat
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "The files of the archive with their offset ranges",
		Example: "  gmctl archive list\n  gmctl archive list --format json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := format.check(); err != nil {
				return err
			}
			o, err := a.openUnpriced()
			if err != nil {
				return err
			}
			arc, err := openArchive(cmd.Context(), o, a.openHeads)
			if err != nil {
				return err
			}
			return a.listArchive(arc, format.format)
		},
	}
	a.archiveFlag(cmd)
	a.ledgerFlag(cmd)
	format.flags(cmd)
	return cmd
}

// A ledgerOpener is openLedger, or openHeads where the ledger may be of another version of the meter.
type ledgerOpener func(context.Context, *folder) (*sqlite.Reader, error)

// openHeads opens the ledger for where the archive has to end, whatever meter it is of: an archive keeps the meters of its
// files. That the meter file is another one by now is said.
func (a *app) openHeads(ctx context.Context, o *folder) (*sqlite.Reader, error) {
	r, err := openAnyLedger(ctx, o)
	if err == nil && !ofMeter(r, o) {
		a.note("the meter file differs from the one that ledger and archive were written under (%.16s, it is %.16s now): the archive is held against the meters that it keeps in _meta",
			r.About.Fingerprint, o.Fingerprint)
	}
	return r, err
}

// openArchive lists the folder's archive against the ledger's heads, where there is a ledger.
func openArchive(ctx context.Context, o *folder, open ledgerOpener) (*archive.Archive, error) {
	dir, err := o.archivePath(o.Run.Archive)
	if err != nil {
		return nil, err
	}
	heads, err := ledgerHeads(ctx, o, open)
	if err != nil {
		return nil, err
	}
	arc, err := archive.Open(archive.Dir(dir), heads)
	if err != nil {
		return nil, noArchive(err, heads)
	}
	return arc, nil
}

// noArchive says what to do about an archive that cannot be opened: a ledger that has archived is never archived again.
func noArchive(err error, heads archive.Heads) error {
	for _, head := range heads {
		if head.File != "" {
			return hint(err, "the ledger says that it was written: restore it, or name where it is as run.archive in the meter file")
		}
	}
	return hint(err, "run 'gmctl stream' first; it writes the archive")
}

// ledgerHeads are the ends of the archive's chains as the ledger has them; nil without a ledger.
func ledgerHeads(ctx context.Context, o *folder, open ledgerOpener) (heads archive.Heads, err error) {
	if o.Run.Ledger == "none" {
		return nil, nil
	}
	r, err := open(ctx, o)
	if errors.Is(err, sqlite.ErrMissing) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	positions, err := r.Positions(ctx)
	if err != nil {
		return nil, err
	}
	heads = archive.Heads{}
	for _, p := range positions {
		heads[archive.Source{Topic: p.Topic, Partition: p.Partition}] = p.Archive
	}
	return heads, nil
}

func (a *app) listArchive(arc *archive.Archive, format string) error {
	if format == "json" {
		for _, p := range arc.Partitions {
			for _, f := range p.Files {
				line, err := json.Marshal(struct {
					Topic     string `json:"topic"`
					Partition int32  `json:"partition"`
					First     int64  `json:"first"`
					Next      int64  `json:"next"`
					Rows      int64  `json:"rows"`
					Bytes     int64  `json:"bytes"`
					SHA256    string `json:"sha256"`
					File      string `json:"file"`
				}{p.Topic, p.Partition, f.First, f.Next, f.Rows, f.Size, f.SHA256, f.Name})
				if err != nil {
					return err
				}
				fmt.Fprintf(a.stdout, "%s\n", line)
			}
		}
		return nil
	}
	t := newTable("partition", "offsets", ">rows", ">bytes", "file")
	var files int
	var rows, bytes int64
	for _, p := range arc.Partitions {
		for _, f := range p.Files {
			t.row(cell(p.Source.String()), fmt.Sprintf("[%d, %d)", f.First, f.Next), text(f.Rows), text(f.Size), cell(f.Name))
			files, rows, bytes = files+1, rows+f.Rows, bytes+f.Size
		}
	}
	if err := t.print(a.stdout, terminalWidth(a.stdout)); err != nil {
		return err
	}
	a.tell("%s, %s, %s", plural(files, "file"), plural(rows, "row"), plural(bytes, "byte"))
	if err := arc.Err(); err != nil {
		return hint(err, "'gmctl archive verify' names every fault")
	}
	return nil
}

func (a *app) archiveVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove the archive complete: no gap, overlap, changed byte, missing tail",
		Long: `verify reads every file whole: the hash chain through the footers to the
ledger's head, every row against its raw bytes (bucket, fields, id, hashes,
prior_max_reach), every row count. It needs no trust in the program that wrote
them but this one. Exit 1 if it finds a fault.`,
		Example: "  gmctl archive verify",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.openUnpriced()
			if err != nil {
				return err
			}
			dir, err := o.archivePath(o.Run.Archive)
			if err != nil {
				return err
			}
			heads, err := ledgerHeads(cmd.Context(), o, a.openHeads)
			if err != nil {
				return err
			}
			fsys := archive.Dir(dir)
			report, err := archive.Verify(cmd.Context(), fsys, verifyOptions(o, fsys, heads))
			if err != nil {
				return noArchive(err, heads)
			}
			return a.printVerify(report)
		},
	}
	a.archiveFlag(cmd)
	a.ledgerFlag(cmd)
	return cmd
}

// verifyOptions gives verify a decoder for the meter at hand and for every version that the archive keeps.
func verifyOptions(o *folder, fsys archive.FS, heads archive.Heads) archive.VerifyOptions {
	meta := archive.NewMeta(fsys)
	return archive.VerifyOptions{
		Heads: heads,
		Decoder: func(fingerprint string) (*meter.Meter, archive.Decode, error) {
			m := o.Meter
			if fingerprint != m.Fingerprint {
				text, err := meta.Meter(fingerprint)
				if err != nil {
					return nil, nil, err
				}
				if m, err = meter.Parse("_meta/meters/"+fingerprint, text); err != nil {
					return nil, nil, err
				}
			}
			return m, schemas.NewDecoder(m).Decode, nil
		},
		Fingerprint: func(text []byte) (string, error) {
			m, err := meter.Parse("_meta/meters", text)
			if err != nil {
				return "", err
			}
			return m.Fingerprint, nil
		},
		Revision: func(text []byte) (string, error) {
			card, err := pricing.Parse(&meter.Meter{}, "_meta/rates", text) // of whatever meter: a revision is of the rates alone
			if err != nil {
				return "", err
			}
			return card.Revision, nil
		},
		MaxFaults: 20,
	}
}

func (a *app) printVerify(r *archive.Report) error {
	for _, n := range r.Notes {
		a.say("note: %s", clean(n.String()))
	}
	for _, f := range r.Faults {
		fmt.Fprintln(a.stdout, clean(f.String()))
	}
	if r.Suppressed > 0 {
		fmt.Fprintf(a.stdout, "and %s with faults\n", plural(r.Suppressed, "more row"))
	}
	if n := int64(len(r.Faults)) + r.Suppressed; n > 0 {
		return found{"archive: " + plural(n, "fault")}
	}
	a.tell("archive: whole: %s, %s, %s, every chain ends at its head", plural(r.Files, "file"), plural(r.Rows, "row"), plural(r.Bytes, "byte"))
	return nil
}
