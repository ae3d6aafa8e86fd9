-- The as-streamed truth of an events meter (R15): a partition is judged alone (R1).
WITH last AS ({{last}}),

-- Most ids come once: their one record is billable (R7). Hashes, because a join on them is cheap; ids that share one by chance go the
-- long way together, where ids are compared whole. Without identity every record is its own id (R3) and there are no copies.
rest AS (
  SELECT id_hash FROM ({{log}}) AS l
  WHERE {{keyed}}
  GROUP BY id_hash HAVING count(*) > 1
),
-- R8: a life is a run of an id's records in which each comes while W is below the greatest horizon before it. A record whose own horizon
-- has passed is late and lengthens no life: the next one begins another.
ran AS (
  SELECT l.*, max({{windowEnd "t"}} + {{L}}) OVER (PARTITION BY part, {{ids ""}} ORDER BY log_offset
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS remembered
  FROM ({{log}}) AS l
  WHERE id_hash IN (SELECT id_hash FROM rest)
),
lived AS (
  SELECT r.*, sum(CASE WHEN w < remembered THEN 0 ELSE 1 END) OVER (PARTITION BY part, {{ids ""}} ORDER BY log_offset
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS life
  FROM ran AS r
),
ranked AS (             -- R3: the first of a life counts (nth = 1), the others are copies
  SELECT l.*, row_number() OVER (PARTITION BY part, {{ids ""}}, life ORDER BY log_offset) AS nth
  FROM lived AS l
),
billable AS (
  SELECT part, log_offset AS off, {{ids ""}}, id_hash{{references ", $"}}, account, sku, t, status, w AS judged{{all ", q#"}}{{attributes ", a#"}}
  FROM (SELECT l.*, r.id_hash AS also FROM ({{log}}) AS l LEFT JOIN rest AS r ON r.id_hash = l.id_hash) AS p
  WHERE also IS NULL
  UNION ALL
  SELECT part, log_offset, {{ids ""}}, id_hash{{references ", $"}}, account, sku, t, status, w{{all ", q#"}}{{attributes ", a#"}}
  FROM ranked
  WHERE nth = 1
),
weighed AS (SELECT b.*, {{windowEnd "t"}} AS window_end, {{filter "status" "q"}} AS filter FROM billable AS b),
verdicts AS (           -- R9: filters first, then R6: counted while judged < end + L
  SELECT CASE WHEN filter IS NOT NULL THEN 'filtered' WHEN judged < window_end + {{L}} THEN 'counted' ELSE 'late' END AS verdict,
         'alone' AS manner, filter, 0 AS door, 1 AS requests,
         part, off, CAST(NULL AS INTEGER) AS x_part, CAST(NULL AS BIGINT) AS x_off, {{ids ""}}, id_hash{{references ", $"}}, 'event' AS kind, account, sku, {{tier "q"}} AS tier, t, window_end, status, judged, CAST(NULL AS BIGINT) AS timer{{all ", q#"}}
  FROM weighed
  UNION ALL
  SELECT CASE WHEN c.payload_hash = f.payload_hash THEN 'duplicate' ELSE 'conflict' END, 'alone', NULL, 0, 1,
         c.part, c.log_offset, NULL, NULL, {{ids "c."}}, c.id_hash{{references ", c.$"}}, 'event', c.account, c.sku, {{tier "c.q"}}, c.t, {{windowEnd "c.t"}}, c.status, c.w, NULL{{all ", c.q#"}}
  FROM ranked AS c
  JOIN ranked AS f ON c.part = f.part AND {{same "c" "f"}} AND c.life = f.life
  WHERE c.nth > 1 AND f.nth = 1
)
