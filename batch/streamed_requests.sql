-- The as-streamed truth of a requests meter (R15): what the stream has to say, verdict by verdict.
-- A partition is judged alone (R1): part stands in every key.
WITH last AS ({{last}}),

-- The plain case first, for it is nearly all of a log: one start and one end, in either order, which meet (R7). Every other id, whatever makes
-- it so, is judged by the full rules below. Hashes tell the two apart because they are cheap: what is odd is every id of a hash that does not
-- stand on one start and one end. A hash never decides: what it brings together is a pair only if the whole ids are the same, and where ids
-- share a hash by chance all of them go the long way.
odd AS (SELECT id_hash FROM ({{log}}) AS l WHERE kind <> 'progress' GROUP BY id_hash HAVING count(*) <> 2 OR count(account) <> 1),
-- The two meet if both pass the door under the watermark of the later one, which judges the record (the earlier one's W is not above it):
-- then an end has W below time(X) + A, a start that comes second below end(D) + L, and one that came first has W(X) < D.
pairs AS (
  SELECT p.*, CASE WHEN same = 1 AND judged < x_t + {{A}} AND judged < CASE WHEN s_off < x_off THEN d ELSE {{windowEnd "d"}} + {{L}} END THEN 1 ELSE 0 END AS plain
  FROM (SELECT CASE WHEN x.part = s.part AND {{same "x" "s"}} THEN 1 ELSE 0 END AS same,
               s.part, s.log_offset AS s_off, s.t + {{A}} AS d, {{ids "s."}}, s.id_hash{{references ", s.$"}}, s.account, s.sku{{attributes ", s.a#"}}{{starts ", s.q#"}},
               x.log_offset AS x_off, x.t AS x_t, x.kind AS x_kind, x.status{{ends ", x.q#"}},
               CASE WHEN s.log_offset < x.log_offset THEN x.w ELSE s.w END AS judged
        FROM (SELECT l.* FROM ({{log}}) AS l LEFT JOIN odd AS o ON o.id_hash = l.id_hash WHERE l.kind = 'start' AND o.id_hash IS NULL) AS s
        JOIN (SELECT l.* FROM ({{log}}) AS l WHERE kind <> 'start' AND kind <> 'progress') AS x ON x.id_hash = s.id_hash) AS p
),
rest AS (SELECT id_hash FROM odd UNION ALL SELECT id_hash FROM pairs WHERE plain = 0),
found AS (SELECT l.* FROM ({{log}}) AS l WHERE id_hash IN (SELECT id_hash FROM rest)),
near AS (
  SELECT l.*, CASE WHEN kind = 'start' THEN 'start' ELSE 'end' END AS side,
         CASE WHEN kind = 'start' THEN {{windowEnd (printf "(t + %s)" A)}} + {{L}} ELSE t + {{A}} END AS horizon
  FROM found AS l
  WHERE kind <> 'progress'
),
progress AS (SELECT part, log_offset, {{ids ""}}, w{{ends ", q#"}} FROM found AS l WHERE kind = 'progress'),

-- R8: a life is a run of an id's records in which each comes while W is below the greatest horizon before it. R7, the door: only
-- records with W below their own horizon come in at all; the bound is the same.
ran AS (
  SELECT n.*, max(horizon) OVER (PARTITION BY part, {{ids ""}} ORDER BY log_offset
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS remembered
  FROM near AS n
  WHERE w < horizon
),
lived AS (
  SELECT r.*, sum(CASE WHEN w < remembered THEN 0 ELSE 1 END) OVER (PARTITION BY part, {{ids ""}} ORDER BY log_offset
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS life
  FROM ran AS r
),
ranked AS (             -- R3: the first start and the first end of a life count (nth = 1), the others are copies
  SELECT l.*, row_number() OVER (PARTITION BY part, {{ids ""}}, life, side ORDER BY log_offset) AS nth
  FROM lived AS l
),
lives AS (
  SELECT part, {{ids ""}}, life, max(id_hash) AS id_hash,
         max(CASE WHEN side = 'start' THEN log_offset END) AS s_off,
         max(CASE WHEN side = 'start' THEN t END) AS s_t,
         max(CASE WHEN side = 'start' THEN w END) AS s_w,
         max(CASE WHEN side = 'start' THEN payload_hash END) AS s_payload,
         max(account) AS account, max(sku) AS sku{{starts ", max(q#) AS q#"}}{{attributes ", max(a#) AS a#"}}{{references ", max(CASE WHEN side = 'start' THEN $ END) AS $"}},
         max(CASE WHEN side = 'end' THEN log_offset END) AS x_off,
         max(CASE WHEN side = 'end' THEN t END) AS x_t,
         max(CASE WHEN side = 'end' THEN w END) AS x_w,
         max(CASE WHEN side = 'end' THEN payload_hash END) AS x_payload,
         max(CASE WHEN side = 'end' THEN kind END) AS x_kind,
         max(CASE WHEN side = 'end' THEN status END) AS x_status{{ends ", max(q#) AS q#"}}{{references ", max(CASE WHEN side = 'end' THEN $ END) AS x_$"}}
  FROM ranked
  WHERE nth = 1
  GROUP BY part, {{ids ""}}, life
),
-- R7: of each end quantity the greatest running total of the progress after S with W(P) < D; totals never add.
told AS (
  SELECT v.part, {{ids "v."}}, v.life{{ends ", max(p.q#) AS q#"}}
  FROM lives AS v
  JOIN progress AS p ON v.part = p.part AND {{same "v" "p"}}
  WHERE p.log_offset > v.s_off AND p.w < v.s_t + {{A}}
  GROUP BY v.part, {{ids "v."}}, v.life
),
due AS (                -- D(S), and the quantities of the abandoned record: b1, b2.. (a whole is at least the sum of its parts)
  SELECT v.*, v.s_t + {{A}} AS d, f.w_last, f.w_end{{abandoned "v" "p"}}
  FROM lives AS v
  JOIN last AS f ON v.part = f.part
  LEFT JOIN told AS p ON v.part = p.part AND {{same "v" "p"}} AND v.life = p.life
),
filtered AS (SELECT v.*, {{filter "'abandoned'" "b"}} AS b_filter FROM due AS v),
-- R7, case by case. A comparison with a record that is not there is null and falls through.
fates AS (
  SELECT v.*,
         CASE WHEN s_off IS NULL THEN 'no start'
              WHEN s_off < x_off AND x_w < d THEN 'met'
              WHEN x_off < s_off AND s_w < x_t + {{A}} THEN 'held'
              WHEN s_off < x_off AND b_filter IS NULL AND x_w < {{windowEnd "d"}} + {{L}} AND x_w < {{windowEnd "x_t"}} + {{L}} THEN 'superseded'
              WHEN w_end >= d THEN 'abandoned'
              ELSE 'open' END AS fate
  FROM filtered AS v
),
-- One record a request, and the watermark that judges it. What a timer brings about is judged by the watermark before the one that reached
-- it (R4): for a sum it is enough that it was lower; items.sql looks it up.
billable AS (
  SELECT part, s_off AS off, part AS x_part, x_off, {{ids ""}}, id_hash{{references ", $"}}, x_kind AS kind, account, sku, x_t AS t, status, judged, CAST(NULL AS BIGINT) AS timer, 'ended' AS manner{{all ", q#"}}{{attributes ", a#"}}
  FROM pairs
  WHERE plain = 1
  UNION ALL
  SELECT part, s_off, part, x_off, {{ids ""}}, id_hash{{references ", $"}}, x_kind, account, sku, x_t, x_status, CASE WHEN fate = 'held' THEN s_w ELSE x_w END, NULL, CASE WHEN fate = 'superseded' THEN 'superseded' ELSE 'ended' END{{all ", q#"}}{{attributes ", a#"}}
  FROM fates
  WHERE fate IN ('met', 'held', 'superseded')
  UNION ALL             -- judged before W reached D, or at W(S): below end(D)+L both times, by the door
  SELECT part, s_off, NULL, NULL, {{ids ""}}, id_hash{{references ", $"}}, 'start', account, sku, d, 'abandoned', s_w, CASE WHEN s_w < d THEN d END, 'abandoned'{{all ", b#"}}{{attributes ", a#"}}
  FROM fates
  WHERE fate = 'abandoned'
),
weighed AS (SELECT b.*, {{windowEnd "t"}} AS window_end, {{filter "status" "q"}} AS filter FROM billable AS b),
single AS (             -- R14: records that are no part of a billable one
  SELECT CASE WHEN fate = 'no start' AND w_end < x_t + {{A}} THEN 'open'
              WHEN s_off < x_off THEN 'late_completion' ELSE 'orphan' END AS verdict, 0 AS door,
         part, x_off AS off, {{ids ""}}, id_hash{{references ", CASE WHEN s_off < x_off THEN $ ELSE x_$ END AS $"}}, x_kind AS kind,
         CASE WHEN s_off < x_off THEN account END AS account, CASE WHEN s_off < x_off THEN sku END AS sku, x_t AS t, x_status AS status,
         CASE WHEN fate = 'no start' AND w_end < x_t + {{A}} THEN w_last ELSE x_w END AS judged,
         CASE WHEN fate = 'no start' AND w_end < x_t + {{A}} OR s_off < x_off THEN NULL ELSE x_t + {{A}} END AS timer{{all ", q#"}}
  FROM (SELECT part, s_off, x_off, {{ids ""}}, id_hash{{references ", $, x_$"}}, x_kind, account, sku, x_t, x_w, x_status, w_last, w_end, fate{{ofEnd ", q#"}}
        FROM fates WHERE x_off IS NOT NULL AND fate IN ('no start', 'abandoned', 'open')) AS x
  UNION ALL
  SELECT 'open', 0, part, s_off, {{ids ""}}, id_hash{{references ", $"}}, 'start', account, sku, s_t, NULL, w_last, NULL{{ofStart ", q#"}}
  FROM fates
  WHERE fate = 'open'
  UNION ALL             -- R3: an end knows the start that came before it
  SELECT CASE WHEN c.kind = 'start' AND c.payload_hash = v.s_payload OR c.kind = v.x_kind AND c.payload_hash = v.x_payload THEN 'duplicate' ELSE 'conflict' END, 0,
         c.part, c.log_offset, {{ids "c."}}, c.id_hash{{references ", CASE WHEN c.side = 'end' AND v.s_off < c.log_offset THEN v.$ ELSE c.$ END"}}, c.kind,
         CASE WHEN c.side = 'end' AND v.s_off < c.log_offset THEN v.account ELSE c.account END,
         CASE WHEN c.side = 'end' AND v.s_off < c.log_offset THEN v.sku ELSE c.sku END, c.t, c.status, c.w, NULL{{all ", c.q#"}}
  FROM ranked AS c
  JOIN lives AS v ON c.part = v.part AND {{same "c" "v"}} AND c.life = v.life
  WHERE c.nth > 1
  UNION ALL
  SELECT 'late', 1, part, log_offset, {{ids ""}}, id_hash{{references ", $"}}, kind, account, sku, t, status, w, NULL{{all ", q#"}}
  FROM near
  WHERE w >= horizon
),
verdicts AS (           -- R9: filters first, then R6: counted while judged < end + L
  SELECT CASE WHEN filter IS NOT NULL THEN 'filtered' WHEN judged < window_end + {{L}} THEN 'counted' ELSE 'late' END AS verdict,
         manner, filter, 0 AS door, 1 AS requests,
         part, off, x_part, x_off, {{ids ""}}, id_hash{{references ", $"}}, kind, account, sku, {{tier "q"}} AS tier, t, window_end, status, judged, timer{{all ", q#"}}
  FROM weighed
  UNION ALL
  SELECT verdict, 'alone', NULL, door, 0,
         part, off, NULL, NULL, {{ids ""}}, id_hash{{references ", $"}}, kind, account, sku, {{tier "q"}}, t, {{windowEnd "t"}}, status, judged, timer{{all ", q#"}}
  FROM single
)
