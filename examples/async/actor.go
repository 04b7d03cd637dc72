// An account that only one goroutine accesses: the others send it messages and wait for replies.
package main

import (
	"fmt"
	"sync"
	"sync/atomic"
)

type message struct {
	amount int64
	reply  chan int64 // the balance, or -1: insufficient
}

func account(mail <-chan message, done chan<- struct{}) {
	balance := int64(0)
	for m := range mail {
		left := balance + m.amount
		if left >= 0 {
			balance = left
		} else {
			left = -1
		}
		m.reply <- left
	}
	close(done)
}

func ask(mail chan<- message, amount int64) int64 {
	reply := make(chan int64, 1)
	mail <- message{amount, reply}
	return <-reply
}

func client(mail chan<- message, amount int64, refused *int64) {
	for i := 0; i < 1000; i++ {
		if ask(mail, amount) == -1 {
			atomic.AddInt64(refused, 1)
		}
	}
}

func clients(mail chan<- message, refused *int64, amounts ...int64) {
	var wait sync.WaitGroup
	for _, amount := range amounts {
		wait.Add(1)
		go func(amount int64) {
			defer wait.Done()
			client(mail, amount, refused)
		}(amount)
	}
	wait.Wait()
}

func main() {
	mail := make(chan message, 8)
	done := make(chan struct{})
	refused := int64(0)
	go account(mail, done)
	clients(mail, &refused, 3, 2, 1)
	clients(mail, &refused, -4, -4)
	fmt.Printf("balance %d, %d refused\n", ask(mail, 0), refused)
	close(mail)
	<-done
}
