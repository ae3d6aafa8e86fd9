-- The complete truth of an events meter (R15): no lateness, ids matched across partitions and never forgotten, in the order log time,
-- partition, offset; a missing log time is 0.
WITH last AS ({{last}}),

-- Most ids come once. Hashes, because a join on them is cheap; ids that share one by chance go the long way together, where ids are
-- compared whole. Without identity every record is its own id (R3) and there are no copies.
rest AS (
  SELECT id_hash FROM ({{log}}) AS l
  WHERE {{keyed}}
  GROUP BY id_hash HAVING count(*) > 1
),
ranked AS (             -- R3: the first counts (nth = 1), the others are copies
  SELECT l.*, row_number() OVER (PARTITION BY {{ids ""}} ORDER BY log_time, part, log_offset) AS nth
  FROM ({{log}}) AS l
  WHERE id_hash IN (SELECT id_hash FROM rest)
),
billable AS (
  SELECT part, log_offset AS off, {{ids ""}}, id_hash{{references ", $"}}, account, sku, t, status{{all ", q#"}}{{attributes ", a#"}}
  FROM (SELECT l.*, r.id_hash AS also FROM ({{log}}) AS l LEFT JOIN rest AS r ON r.id_hash = l.id_hash) AS p
  WHERE also IS NULL
  UNION ALL
  SELECT part, log_offset, {{ids ""}}, id_hash{{references ", $"}}, account, sku, t, status{{all ", q#"}}{{attributes ", a#"}}
  FROM ranked
  WHERE nth = 1
),
weighed AS (SELECT b.*, {{windowEnd "t"}} AS window_end, {{filter "status" "q"}} AS filter FROM billable AS b),
verdicts AS (           -- R9: what no filter keeps out is counted, however late
  SELECT CASE WHEN filter IS NOT NULL THEN 'filtered' ELSE 'counted' END AS verdict,
         'alone' AS manner, filter, 0 AS door, 1 AS requests,
         part, off, CAST(NULL AS INTEGER) AS x_part, CAST(NULL AS BIGINT) AS x_off, {{ids ""}}, id_hash{{references ", $"}}, 'event' AS kind, account, sku, {{tier "q"}} AS tier, t, window_end, status, 0 AS judged, CAST(NULL AS BIGINT) AS timer{{all ", q#"}}
  FROM weighed
  UNION ALL
  SELECT CASE WHEN c.payload_hash = f.payload_hash THEN 'duplicate' ELSE 'conflict' END, 'alone', NULL, 0, 1,
         c.part, c.log_offset, NULL, NULL, {{ids "c."}}, c.id_hash{{references ", c.$"}}, 'event', c.account, c.sku, {{tier "c.q"}}, c.t, {{windowEnd "c.t"}}, c.status, 0, NULL{{all ", c.q#"}}
  FROM ranked AS c
  JOIN ranked AS f ON {{same "c" "f"}}
  WHERE c.nth > 1 AND f.nth = 1
)
