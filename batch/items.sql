{{if progress}}, told_progress AS (   -- R14: progress records are no part of a verdict on money
  SELECT part, log_offset, {{ids ""}}, id_hash{{references ", $"}}, account, sku, t, status, {{if streamed}}w{{else}}0{{end}} AS w{{all ", q#"}}
  FROM ({{log}}) AS l
  WHERE kind = 'progress'
)
{{end}}, known AS (
  SELECT * FROM verdicts
{{if progress}}  UNION ALL
  SELECT 'progress', 'alone', NULL, 0, 0, part, log_offset, NULL, NULL, {{ids ""}}, id_hash{{references ", $"}}, 'progress', account, sku, {{tier "q"}}, t, {{windowEnd "t"}}, status, w, NULL{{all ", q#"}}
  FROM told_progress
{{end}}),
chosen AS (SELECT v.* FROM known AS v WHERE {{chosen}}){{if streamed}},
-- R4: what a timer brought about is judged by the watermark before the one that reached it: the greatest below it that the partition had.
marks AS (
  SELECT part, coalesce(prior_max_reach - {{B}}, {{never}}) AS moment, 1 AS turn FROM {{records}} GROUP BY part, coalesce(prior_max_reach - {{B}}, {{never}})
  UNION ALL
  SELECT part, w_last, 1 FROM last
  UNION ALL
  SELECT part, timer, 0 FROM chosen WHERE timer IS NOT NULL GROUP BY part, timer
),
before AS (
  SELECT part, moment, turn, max(CASE WHEN turn = 1 THEN moment END) OVER (PARTITION BY part ORDER BY moment, turn
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS w
  FROM marks
){{end}}
SELECT c.verdict, c.manner, c.filter, c.door, c.requests, c.part, c.off, c.x_part, c.x_off, c.kind, c.account, c.sku, CAST(c.tier AS BIGINT) AS tier,
       c.t, c.window_end, c.status, c.id_hash, {{if streamed}}coalesce(b.w, c.judged){{else}}c.judged{{end}} AS judged, {{ids "c."}}{{references ", c.$"}}{{all ", c.q# AS $"}}
FROM chosen AS c{{if streamed}}
LEFT JOIN before AS b ON b.turn = 0 AND b.part = c.part AND b.moment = c.timer{{end}}
