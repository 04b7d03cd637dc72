import com.lmax.disruptor.BatchEventProcessor;
import com.lmax.disruptor.BlockingWaitStrategy;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;

import java.util.Arrays;
import java.util.concurrent.CountDownLatch;

/**
 * One producer to one consumer over the Disruptor, one line of JSON.
 * Arguments: the wait strategy, the batch, the size of the ring.
 */
public final class DisruptorRing {
    private static final int WARM_UPS = 4;
    private static final int ROUNDS = 7;
    private static final double ROUND_SECONDS = 0.4;
    private static final long FIRST_ITEMS = 2_000_000;
    private static final long MOST_ITEMS = 200_000_000;

    static final class Event {
        long value;
    }

    /** Adds up the values, and says when it has seen the last one. */
    static final class Adder implements EventHandler<Event> {
        long sum;
        long last;
        CountDownLatch done;

        @Override
        public void onEvent(Event event, long sequence, boolean endOfBatch) {
            sum += event.value;
            if (sequence == last) {
                done.countDown();
            }
        }
    }

    private final RingBuffer<Event> ring;
    private final Adder adder = new Adder();
    private final int batch;

    private DisruptorRing(RingBuffer<Event> ring, int batch) {
        this.ring = ring;
        this.batch = batch;
    }

    private void publishOne(long value) {
        long seq = ring.next();
        ring.get(seq).value = value;
        ring.publish(seq);
    }

    private void publishBatch(long value) {
        long hi = ring.next(batch);
        long lo = hi - batch + 1;
        for (long seq = lo; seq <= hi; seq++) {
            ring.get(seq).value = value++;
        }
        ring.publish(lo, hi);
    }

    /** Sends items (a multiple of the batch), returns the seconds it took. */
    private double round(long items) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(1);
        // The consumer sees these by way of the first publish.
        adder.sum = 0;
        adder.last = ring.getCursor() + items;
        adder.done = done;

        long start = System.nanoTime();
        if (batch == 1) {
            for (long i = 0; i < items; i++) {
                publishOne(i);
            }
        } else {
            for (long i = 0; i < items; i += batch) {
                publishBatch(i);
            }
        }
        done.await();
        long nanos = System.nanoTime() - start;

        if (adder.sum != items * (items - 1) / 2) {
            throw new IllegalStateException("the sum is wrong");
        }
        return nanos / 1e9;
    }

    private long median() throws InterruptedException {
        long items = FIRST_ITEMS / batch * batch;
        for (int i = 0; i < WARM_UPS; i++) {
            double seconds = round(items);
            long next = (long) (items / seconds * ROUND_SECONDS);
            items = Math.max(1, Math.min(next, MOST_ITEMS) / batch) * batch;
        }
        double[] rates = new double[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            rates[i] = items / round(items);
        }
        System.err.println(items + " items a round: " + Arrays.toString(rates));
        Arrays.sort(rates);
        return Math.round(rates[ROUNDS / 2]);
    }

    private static WaitStrategy strategy(String name) {
        switch (name) {
        case "yielding":
            return new YieldingWaitStrategy();
        case "blocking":
            return new BlockingWaitStrategy();
        case "busyspin":
            return new BusySpinWaitStrategy();
        default:
            throw new IllegalArgumentException("no such wait strategy: " + name);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        String name = args[0];
        int batch = Integer.parseInt(args[1]);
        int size = Integer.parseInt(args[2]);
        if (batch > size) {
            throw new IllegalArgumentException("the batch does not fit the ring");
        }

        RingBuffer<Event> ring = RingBuffer.createSingleProducer(Event::new, size, strategy(name));
        DisruptorRing bench = new DisruptorRing(ring, batch);
        BatchEventProcessor<Event> consumer =
            new BatchEventProcessor<>(ring, ring.newBarrier(), bench.adder);
        ring.addGatingSequences(consumer.getSequence());
        Thread thread = new Thread(consumer, "consumer");
        thread.setDaemon(true);
        thread.start();

        long value = bench.median();
        consumer.halt();
        thread.join();
        System.out.println("{\"bench\": \"ring\", \"subject\": \"disruptor-" + name
            + "\", \"value\": " + value + ", \"unit\": \"items/s\", \"params\": {\"threads\": 2, \"batch\": "
            + batch + ", \"ring\": " + size + "}}");
    }
}
