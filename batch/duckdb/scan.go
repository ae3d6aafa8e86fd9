package duckdb

import (
	"fmt"
	"math"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// scan is the archive as one relation: the files of each part with the part's number, rows outside of the part left out. What the path of
// a file seems to say is not read from it (a folder above the archive may be named account=x): the job knows the partition.
func scan(job *batch.Job) string {
	var branches []string
	for i := range job.Parts {
		if b := scanPart(job, &job.Parts[i]); b != "" {
			branches = append(branches, b)
		}
	}
	if len(branches) == 0 {
		return noRecords(job)
	}
	return strings.Join(branches, "\nUNION ALL ")
}

func scanPart(job *batch.Job, p *batch.Part) string {
	var paths []string
	whole := true
	for _, f := range job.Files {
		if f.Partition != p.Partition || !overlaps(f, p) {
			continue
		}
		paths = append(paths, quote(f.Path))
		whole = whole && f.Next > f.First && f.First >= p.Begin && f.Next <= p.End
	}
	if len(paths) == 0 {
		return ""
	}
	where := ""
	if !whole {
		where = bounds(p)
	}
	return fmt.Sprintf("SELECT CAST(%d AS INTEGER) AS part, * FROM read_parquet([%s], hive_partitioning = false, union_by_name = true)%s",
		p.Partition, strings.Join(paths, ", "), where)
}

// overlaps reports whether a file may hold rows of the part. A file that does not say what it holds may hold anything.
func overlaps(f batch.File, p *batch.Part) bool {
	return f.Next <= f.First || f.First < p.End && f.Next > p.Begin
}

// bounds leaves out what does not exist for the job.
func bounds(p *batch.Part) string {
	var list []string
	if p.Begin > math.MinInt64 {
		list = append(list, fmt.Sprintf("log_offset >= %d", p.Begin))
	}
	if p.End < batch.Everything {
		list = append(list, fmt.Sprintf("log_offset < %d", p.End))
	}
	if len(list) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(list, " AND ")
}

// noRecords is an archive of no rows.
func noRecords(job *batch.Job) string {
	columns := []string{"CAST(NULL AS INTEGER) AS part"}
	for _, c := range schemas.ArchiveColumns(job.Meter) {
		columns = append(columns, fmt.Sprintf("CAST(NULL AS %s) AS \"%s\"", c.Type.SQL(), c.Name))
	}
	return "SELECT " + strings.Join(columns, ", ") + " WHERE 1 = 0"
}

// checkRows requires as many rows as the footers of the files promise (R14): a file that reads as empty is no empty file. Parts that are
// cut within a file, and files that promise nothing, cannot be checked.
func checkRows(job *batch.Job, got map[int32]int64) error {
	if job.Horizon != nil {
		return nil
	}
	for i := range job.Parts {
		p := &job.Parts[i]
		var want int64
		sure := true
		for _, f := range job.Files {
			if f.Partition != p.Partition || !overlaps(f, p) {
				continue
			}
			want += f.Rows
			sure = sure && f.Rows > 0 && f.First >= p.Begin && f.Next <= p.End
		}
		if sure && want != got[p.Partition] {
			return fmt.Errorf("duckdb: read partition %d: its files promise %d rows, %d were read", p.Partition, want, got[p.Partition])
		}
	}
	return nil
}
