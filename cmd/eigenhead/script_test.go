package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/eigenhead/eigenhead/internal/testshared"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"eigenhead": func() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs testdata/script: the command line as a user types it.
// Beside the usual commands there is "exits N COMMAND…", which checks an exit
// code, and "interrupt", which stops the last background command.
func TestScripts(t *testing.T) {
	shared, _ := testshared.Root()
	runs, err := filepath.Abs("../../internal/monitor/testdata/runs")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("SHARED", shared)
			e.Setenv("RUNS", runs)
			e.Setenv("XDG_CACHE_HOME", e.WorkDir+"/cache")
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			_, ok := testshared.Root()
			return cond == "shared" && ok, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
		},
	})
}

// exits runs a command and checks its exit code; output is there for stdout and stderr.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N command…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	start := time.Now()
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if coded, ok := err.(interface{ ExitCode() int }); ok {
		got = coded.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d (after %v)", got, want, time.Since(start))
	}
}
