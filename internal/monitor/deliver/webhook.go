package deliver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Headers of a webhook. The signature is
//
//	"sha256=" + hex(HMAC-SHA256(secret, timestamp + "." + body))
//
// so that a receiver that refuses old timestamps cannot be played an old request. A
// delivery that is repeated has the same value in HeaderDelivery.
const (
	HeaderSignature = "X-Eigenhead-Signature"
	HeaderTimestamp = "X-Eigenhead-Timestamp" // seconds since 1970
	HeaderDelivery  = "X-Eigenhead-Delivery"
)

// Webhook posts each alert as JSON to one URL.
type Webhook struct {
	url    *url.URL
	secret []byte
	opts   WebhookOptions
	client *http.Client
}

// WebhookOptions of NewWebhook. Zero values mean the defaults.
type WebhookOptions struct {
	Timeout  time.Duration    // of one attempt; 0: 10 s
	Attempts int              // in one Deliver; 0: 4
	Pause    time.Duration    // before the second attempt, doubled for each after it, ± a quarter; 0: 500 ms
	Longest  time.Duration    // a Retry-After beyond it ends the attempts; 0: 30 s
	Now      func() time.Time // for the timestamp; nil: time.Now
}

// answerLimit bounds what is read of a receiver's answer.
const answerLimit = 4 << 10

// NewWebhook returns a webhook. Requests are signed where secret is not empty. No
// redirect is followed: an answer that sends us elsewhere could aim at an address
// that only this machine can reach, and would get the alert.
//
// Errors: *xerr.Usage for a URL that is not http or https, or names no host.
func NewWebhook(address, secret string, opts *WebhookOptions) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		found := "not a URL"
		if err == nil {
			found = u.Redacted()
		}
		return nil, &xerr.Usage{Flag: "--webhook", Found: found, Want: "an address such as https://host/path"}
	}
	w := &Webhook{url: u, secret: []byte(secret)}
	if opts != nil {
		w.opts = *opts
	}
	o := &w.opts
	o.Timeout, o.Pause, o.Longest = orDefault(o.Timeout, 10*time.Second), orDefault(o.Pause, 500*time.Millisecond), orDefault(o.Longest, 30*time.Second)
	o.Attempts = orDefault(o.Attempts, 4)
	if o.Now == nil {
		o.Now = time.Now
	}
	w.client = &http.Client{Timeout: o.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return w, nil
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Name is "webhook" and a hash of the address, which may hold a secret.
func (w *Webhook) Name() string {
	sum := sha256.Sum256([]byte(w.url.String()))
	return "webhook-" + hex.EncodeToString(sum[:4])
}

// Deliver posts the alert and tries again where that can help: the network failed, or
// the answer was 408, 425, 429 or 5xx. Any 2xx is success.
//
// Errors: ctx's; the last attempt's, which names the host and never the whole address.
func (w *Webhook) Deliver(ctx context.Context, a monitor.Alert) error {
	body, err := encode(a)
	if err != nil {
		return err
	}
	pause := w.opts.Pause
	for attempt := 1; ; attempt++ {
		wait, err := w.post(ctx, a, body)
		var final *refusal
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &final) && final.permanent, attempt >= w.opts.Attempts, wait > w.opts.Longest:
			return fmt.Errorf("webhook %s, attempt %d: %w", w.url.Host, attempt, err)
		}
		timer := time.NewTimer(max(wait, pause*3/4+rand.N(pause/2+1)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		pause *= 2
	}
}

// refusal is an answer that is no success.
type refusal struct {
	status    string
	permanent bool
}

func (r *refusal) Error() string { return "answered " + r.status }

// post makes one attempt. wait is what the receiver asks us to.
func (w *Webhook) post(ctx context.Context, a monitor.Alert, body []byte) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url.String(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "eigenhead")
	req.Header.Set(HeaderDelivery, deliveryOf(a))
	stamp := strconv.FormatInt(w.opts.Now().Unix(), 10)
	req.Header.Set(HeaderTimestamp, stamp)
	if len(w.secret) > 0 {
		req.Header.Set(HeaderSignature, Sign(w.secret, stamp, body))
	}
	resp, err := w.client.Do(req)
	if err != nil {
		var whole *url.Error
		if errors.As(err, &whole) {
			err = whole.Err // without the address
		}
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, answerLimit) // lets the connection be used again
	switch s := resp.StatusCode; {
	case s >= 200 && s < 300:
		return 0, nil
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly, s == http.StatusTooManyRequests, s >= 500:
		return retryAfter(resp.Header.Get("Retry-After"), w.opts.Now()), &refusal{status: resp.Status}
	case s >= 300 && s < 400:
		return 0, &refusal{status: resp.Status + ", a redirect, which is not followed", permanent: true}
	default:
		return 0, &refusal{status: resp.Status, permanent: true}
	}
}

// Sign returns the value of HeaderSignature.
func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// deliveryOf names an alert the same at every attempt, also after a restart.
func deliveryOf(a monitor.Alert) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%d", a.Run, a.Code, a.Where, a.Step))
	return hex.EncodeToString(sum[:16])
}

// retryAfter reads seconds or a date; 0 for anything else.
func retryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
