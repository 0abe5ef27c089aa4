# Targets for building, testing and trying out Liqo. `make help` lists them.
# Everything that is downloaded or built besides the product itself lives in $LIQO_CACHE ($HOME/.cache/liqo).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Two tests of real clusters at once would only slow each other down.
.NOTPARALLEL:

MODULE := liqo.io/liqo
GIT := git -c safe.directory='*'
VERSION ?= $(shell $(GIT) describe --tags --match 'v*' 2>/dev/null || echo v0.0.0-dev)
COMMIT ?= $(shell $(GIT) rev-parse --verify --quiet HEAD 2>/dev/null)
LDFLAGS := -s -w -X $(MODULE)/pkg/version.Version=$(VERSION) -X $(MODULE)/pkg/version.Commit=$(COMMIT)
# Go's own stamp of the checkout fails when root builds another user's clone; the linker flags above replace it. Without the checkout's path
# in what is compiled, what one clone compiled serves the next one, and without debug information and cgo it serves the images, too. The tag
# leaves out of gRPC the pages that it shows its calls on, with which the controller manager is half as large again. The compiler takes a quarter
# less processor time where it may use some hundred MiB more (cmd/liqo-fabric from nothing: 309 s, with it 230 s); what it compiles is not told.
FLAGS := -buildvcs=false -trimpath -gcflags=all=-dwarf=false -tags=grpcnotrace "-toolexec=env GOGC=400"
export GOFLAGS := $(strip $(filter-out $(FLAGS),$(GOFLAGS)) $(FLAGS))
export CGO_ENABLED := 0
export GOWORK := off

# Where images go, for which platforms, and as what.
IMAGES_OUT ?= bin/images
IMAGES_FORMAT ?= docker-archive
IMAGES_FLAGS ?=

# Extra arguments of `go test`, such as TEST_FLAGS='-run TestName -v'.
TEST_FLAGS ?=
# How long each fuzz target is fed; `make fuzz FUZZ_TIME=10m` to search in earnest. A number of inputs by default: where a
# span of time is over amid an input, Go may report "context deadline exceeded" as a failure of the target.
FUZZ_TIME ?= 500x
# Arguments of `make bench`, such as BENCH_FLAGS='--quick' or '--only burst --pods 2000'; `make bench BENCH_FLAGS=-h` lists them.
BENCH_FLAGS ?=
# Arguments of `make conformance`, such as CONFORMANCE_FLAGS='--focus Probing --only virtual'; `make conformance CONFORMANCE_FLAGS=-h` lists them.
CONFORMANCE_FLAGS ?=
# The database of known vulnerabilities.
VULNDB ?= https://vuln.go.dev
# Only the tests of these packages; `make unit UNIT=./pkg/mirror/...`.
UNIT ?= $(shell go list ./... | grep -v -E '^$(MODULE)/test/(integration|e2e|skew)(/|$$)')
# Of these, the ones whose code starts no goroutine, which test/architecture holds: there is nothing to race with, and
# the race detector makes what they calculate take four times as long.
NO_RACE = $(addprefix $(MODULE)/,pkg/dataplane test/architecture test/chart test/compat)
RACED = $(filter-out $(NO_RACE),$(UNIT))
PLAIN = $(filter $(NO_RACE),$(UNIT))
# Folders with Go code of this module.
SOURCES = $(wildcard charts cmd deployments hack pkg test)

.PHONY: help
help: ## List these targets.
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Try it

.PHONY: quickstart
quickstart: ## Start two real clusters on this machine, peer them and offload a demo application (needs root).
	@GOGC=300 go build -o bin/quickstart ./hack/quickstart
	@bin/quickstart up

.PHONY: quickstart-down
quickstart-down: ## Remove everything that quickstart started.
	@go run ./hack/quickstart down

##@ Build

.PHONY: build
build: ## Compile all binaries into bin/.
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: images
images: ## Assemble the container images into bin/images (IMAGES_FORMAT=docker-archive or oci).
	@go run ./deployments/images --out $(IMAGES_OUT) --format $(IMAGES_FORMAT) --tag $(VERSION) $(IMAGES_FLAGS)

.PHONY: generate
generate: ## Write what is made from the code: deepcopy functions, CRDs, RBAC rules, the chart's schema, references.
	@go run ./hack/generate
	@go run ./hack/values
	@go run ./hack/clidocs

.PHONY: release-files
release-files: ## Make what a release holds beside liqoctl, in bin/release: images, chart, and a bill of materials (SBOM) of each.
	@rm -rf bin/release && mkdir -p bin/release
	@go run ./deployments/images --out bin/release --format docker-archive --arch amd64,arm64 --tag $(VERSION) $(IMAGES_FLAGS)
	@"$$(go run ./hack/tools helm)" package charts/liqo --version $(VERSION:v%=%) --app-version $(VERSION) --destination bin/release
	@sbom="$$(go run ./hack/tools cyclonedx-gomod)"; \
	for binary in bin/release/.bin/*/*; do \
		"$$sbom" bin -json -version $(VERSION) -output "bin/release/$$(basename "$$binary")-$$(basename "$$(dirname "$$binary")").cdx.json" "$$binary"; \
	done

.PHONY: snapshot
snapshot: ## Make a whole release in dist/ without publishing it.
	@"$$(go run ./hack/tools goreleaser)" release --snapshot --clean

.PHONY: fmt
fmt: ## Format all Go code.
	@gofmt -s -w $(SOURCES)

.PHONY: clean
clean: ## Remove what was built in the checkout; the cache outside stays.
	@rm -rf bin dist

##@ Check

# Three tiers. What is in which, and why, says test/tiers.tsv.
.PHONY: check
check: check-fmt vet lint check-generated unit ## What one runs all the time: format, vet, lint, generated files, unit tests (4 minutes with caches, 25 without).

.PHONY: test
test: need-root begin check fuzz ## What must hold: check, fuzz, integration and the core of e2e (needs root; 32 minutes with caches, three quarters of an hour where unit tests have to be compiled).
	@status=0; $(MAKE) clusters || status=$$?; go run ./hack/suite report $(RECEIPT) || status=$$?; exit $$status

# There is a receipt for the whole alone.
RECEIPT = $(if $(TEST_FLAGS)$(filter off,$(LIQO_E2E)),,--receipt)

.PHONY: test-all
test-all: need-root begin check ## Everything, before an issue is closed and every night.
	@status=0; for suite in clusters-all e2e-flat chaos skew conformance race 'fuzz FUZZ_TIME=30s'; do \
		$(MAKE) $$suite || { echo "failed: make $$suite" >&2; status=1; }; \
	done; go run ./hack/suite report || status=$$?; exit $$status

.PHONY: passed
passed: ## Say whether 'make test' passed on this commit, and which commits came since.
	@go run ./hack/suite passed

# Results of an earlier run are none of this one's.
.PHONY: begin
begin:
	@mkdir -p dist/test; find dist/test -type f ! -name passed ! -path '*/commands/*' -delete; touch dist/test/began

# Each of them has clusters of its own, which three at a time keep two processors busy, as most mostly wait for times to pass: the longest come
# first. A machine with little memory does with fewer: each takes some 4 GiB.
SIDE_BY_SIDE ?= 3
IN_ORDER = $(E2E) $(addprefix ./test/integration/,outages lost restarts endings settings greed offloading) ./test/integration/...
E2E := $(if $(filter off,$(LIQO_E2E)),,./test/e2e/...)
SUITE = go run ./hack/suite run

.PHONY: clusters
clusters: need-root need-programs ## Run integration and the core of e2e side by side (23 minutes; one test: make integration or e2e).
	@$(SUITE) --name clusters --tier test -- -p $(SIDE_BY_SIDE) -timeout 60m $(TEST_FLAGS) $(IN_ORDER)

.PHONY: clusters-all
clusters-all: need-root need-programs ## Run all of integration and e2e.
	@$(SUITE) --name clusters-all -- -p $(SIDE_BY_SIDE) -timeout 150m $(TEST_FLAGS) $(IN_ORDER)

.PHONY: check-fmt
check-fmt: ## Fail when Go code is not formatted.
	@unformatted=$$(gofmt -s -l $(SOURCES)); \
	if [ -n "$$unformatted" ]; then \
		echo "These files are not formatted; run 'make fmt':" >&2; echo "$$unformatted" >&2; exit 1; \
	fi

.PHONY: vet
vet: ## Run go vet.
	@go vet ./...

.PHONY: lint
lint: ## Run golangci-lint at the pinned version, built once into the cache.
	@"$$(go run ./hack/tools golangci-lint)" run ./...

.PHONY: check-generated
check-generated: ## Fail when a generated file is missing, different or left over.
	@go run ./hack/generate --check
	@go run ./hack/values --check

.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities in the code that is called (VULNDB=file:///copy without a network).
	@"$$(go run ./hack/tools govulncheck)" -db $(VULNDB) ./...

.PHONY: check-release
check-release: ## Check the release configuration with goreleaser, built once into the cache.
	@"$$(go run ./hack/tools goreleaser)" check

.PHONY: unit
unit: need-cc need-nft ## Run unit tests with the race detector (2 minutes with caches, 20 without; UNIT=./pkg/mirror TEST_FLAGS='-run TestName' for one).
	@status=0; \
	$(if $(RACED),CGO_ENABLED=1 go test -race -vet=off -timeout 10m $(TEST_FLAGS) $(RACED) || status=$$?;) \
	$(if $(PLAIN),go test -vet=off -timeout 10m $(TEST_FLAGS) $(PLAIN) || status=$$?;) \
	exit $$status

.PHONY: fuzz
fuzz: ## Feed every fuzz target for FUZZ_TIME, by default 500 inputs: about a minute in all.
	@mkdir -p bin; binary="$$PWD/bin/fuzz.test"; cache="$$(go env GOCACHE)/fuzz"; \
	for package in $$(grep -rl --include='*_test.go' '^func Fuzz' $(SOURCES) | xargs -n 1 dirname | sort -u); do \
		go test -c -fuzz=. -o "$$binary" "./$$package"; \
		for target in $$("$$binary" -test.list '^Fuzz'); do \
			echo "$$package $$target"; \
			(cd "$$package" && "$$binary" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZ_TIME) -test.fuzzminimizetime 10x -test.fuzzcachedir "$$cache/$$package"); \
		done; \
	done; \
	rm "$$binary"

.PHONY: integration
integration: need-programs ## Run tests against real control planes with simulated nodes (no root; TEST_FLAGS='-run TestName' for one).
	@$(SUITE) --name integration -- -p $(SIDE_BY_SIDE) -timeout 120m $(TEST_FLAGS) $(INTEGRATION)

INTEGRATION ?= ./test/integration/...

.PHONY: race
race: need-cc need-programs ## Run the integration tests with the race detector in our processes, too: a race ends the process.
	@GORACE=halt_on_error=1 CGO_ENABLED=1 GOFLAGS='$(GOFLAGS) -race' $(SUITE) --name race -- -p $(SIDE_BY_SIDE) -timeout 240m $(TEST_FLAGS) $(INTEGRATION)

.PHONY: e2e
e2e: need-root need-programs ## Run tests in real clusters whose networks Liqo connects (root; TEST_FLAGS='-run TestName' for one).
	@$(SUITE) --name e2e -- -timeout 150m $(TEST_FLAGS) ./test/e2e/...

.PHONY: e2e-flat
e2e-flat: need-root need-programs ## Run e2e in clusters whose networks are routed, and that Liqo does not connect (root).
	@LIQO_E2E_WORLD=flat $(SUITE) --name e2e-flat -- -timeout 150m $(TEST_FLAGS) ./test/e2e/...

# Built before anything waits for clusters to start.
.PHONY: need-programs
need-programs:
	@[ -n "$${LIQO_LAB_BIN:-}" ] || go run ./test/lab build

.PHONY: need-root
need-root:
	@[ "$${LIQO_E2E:-on}" = off ] || [ "$$(id -u)" -eq 0 ] || { \
		echo "End-to-end tests start real clusters and need root: run them with sudo, or set LIQO_E2E=off to leave them out." >&2; exit 1; }

.PHONY: chaos
chaos: ## Do random things to the network of two clusters under steady traffic (needs root; about 20 minutes; LIQO_E2E_CHAOS_SEED repeats a run).
	@LIQO_E2E_CHAOS_ROUNDS=$${LIQO_E2E_CHAOS_ROUNDS:-50} go test -count=1 -v -timeout 90m $(TEST_FLAGS) -run '^TestNetworkChaos$$' ./test/e2e

.PHONY: chaos-partition
chaos-partition: ## Cut the link to a provider at 52 random moments, in four pairs of simulated clusters (no root needed; some 30 minutes; LIQO_CHAOS_PARTITIONS says how often in each, LIQO_CHAOS_PARTITIONS_SEED repeats a run).
	@pairs=; for pair in 1 2 3 4; do \
		LIQO_CHAOS_PARTITIONS=$${LIQO_CHAOS_PARTITIONS:-13} go test -count=1 -v -timeout 8h $(TEST_FLAGS) -run '^TestPartitionsAtRandomMoments$$' ./test/integration/outages & pairs="$$pairs $$!"; \
	done; status=0; for pair in $$pairs; do wait $$pair || status=$$?; done; exit $$status

.PHONY: skew
skew: ## Run this code beside that of the last recorded release in real clusters, and upgrade each side first (needs root; about 10 minutes).
	@go test -count=1 -timeout 40m $(TEST_FLAGS) ./test/skew

.PHONY: conformance
conformance: ## Run Kubernetes' own tests at a provider and on its virtual node, in real clusters (needs root; see docs/conformance.md).
	@go build -o dist/conformance/conformance ./test/conformance
	@dist/conformance/conformance $(CONFORMANCE_FLAGS)

.PHONY: bench
bench: ## Measure offloading side by side with a plain cluster, in simulated clusters (no root needed; about 15 minutes).
	@go build -o dist/bench/bench ./test/bench
	@dist/bench/bench $(BENCH_FLAGS)

.PHONY: bench-network
bench-network: ## Measure the network side by side with a bare tunnel, in network namespaces (needs root; about 6 minutes).
	@go build -o dist/bench/network ./test/bench/network
	@dist/bench/network $(BENCH_FLAGS)

# Tests in network namespaces, which root runs, compare the kernel with what nft says.
.PHONY: need-nft
need-nft:
	@[ "$$(id -u)" -ne 0 ] || command -v nft >/dev/null || go run ./test/lab prepare nft

.PHONY: need-cc
need-cc:
	@command -v "$$(go env CC)" >/dev/null || { \
		echo "The race detector needs a C compiler: install gcc, or point CC to one." >&2; exit 1; }
