// Package browsertest opens the pages that the program writes in a real browser.
// It holds tests only, behind the build tag "browser", since they need Chromium:
//
//	go test -tags browser ./internal/browsertest
package browsertest
