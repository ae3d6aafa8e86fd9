# The targets a newcomer guesses. `make` lists them.
GO ?= go
FUZZTIME ?= 10s
BIN := bin/gmctl

.PHONY: help build test race lint fuzz bench pgo day bench-once mutants crash clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: ## build bin/gmctl
	$(GO) build -o $(BIN) ./cmd/gmctl

test: ## every test that needs no server
	$(GO) vet ./...
	$(GO) test -timeout 30m ./...

race: ## the rooms with goroutines, and the pure core, under the race detector
	$(GO) test -race -short ./meter ./pricing ./schemas ./trace ./stream ./diff ./story
	$(GO) test -race -short -run 'TestTraces|TestRecovery|TestFollow|TestStop|TestStdin|TestNoLeaks' ./run -rapid.checks=5

lint: ## gofmt, vet, staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

fuzz: ## every fuzz target for FUZZTIME each (default 10s)
	scripts/fuzz.sh $(FUZZTIME)

bench: build ## benchmarks that check their answer, beside their targets
	scripts/bench.sh

pgo: build ## bin/gmctl built anew with a profile of the main job: 5 to 10 % faster
	rm -rf bin/profiles && mkdir -p bin/profiles
	$(GO) run ./internal/bench -gmctl $(BIN) -sizes 1000000 -profiles bin/profiles
	$(GO) tool pprof -proto -output bin/main.pgo bin/profiles/*.prof
	$(GO) build -pgo=bin/main.pgo -o $(BIN) ./cmd/gmctl

day: build ## a gateway's whole day, 25 M records, beside an hour of it and a fifth: time, CPU, memory, disk
	$(GO) run ./internal/bench -gmctl $(BIN) -sizes 1000000,5000000,25000000

bench-once: ## every Go benchmark once, so that none rots
	$(GO) test -run '^$$' -bench . -benchtime 1x -short ./...

mutants: ## broken rules in the stream and in the SQL, each of which has to be noticed
	$(GO) test -count=1 -timeout 90m -run Mutants ./internal/mutants -args -mutants

crash: ## SIGKILL at random moments, with real processes
	GMCTL_KILLS=150 $(GO) test -count=1 -timeout 30m -run 'Kill|FullDisk' ./cmd/gmctl ./run

clean: ## remove what was built
	rm -rf bin
