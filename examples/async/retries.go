// A call that sometimes fails and sometimes hangs: it is retried with a timeout, with a doubled delay each time.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var errRefused = errors.New("refused")

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The first attempt fails, the second hangs, the third succeeds.
func call(ctx context.Context, attempt int) error {
	if attempt == 1 {
		return errRefused
	}
	pause := time.Millisecond
	if attempt == 2 {
		pause = 10 * time.Second
	}
	return sleep(ctx, pause)
}

func withRetries(ctx context.Context, most int) error {
	pause := time.Millisecond
	for attempt := 1; ; attempt++ {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		err := call(limited, attempt)
		cancel()
		text := "refused"
		if err == nil {
			text = "done"
		} else if errors.Is(err, context.DeadlineExceeded) {
			text = "too late"
		}
		fmt.Printf("attempt %d: %s\n", attempt, text)
		if err == nil || attempt == most {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

func main() {
	ctx := context.Background()
	status := 0
	if withRetries(ctx, 5) != nil {
		status = 1
	}
	fmt.Printf("of 5: %d\n", status)
	status = 0
	if withRetries(ctx, 1) == errRefused {
		status = 1
	}
	fmt.Printf("of 1: %d\n", status)
}
