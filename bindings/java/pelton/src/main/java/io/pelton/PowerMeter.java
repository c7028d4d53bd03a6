package io.pelton;

import java.io.IOException;

/**
 * A power meter of the application's own. It is read on a thread of its own while downloads are under way.
 * What was drawn before the first reading of a download and after the last one is missed: up to an interval each.
 */
public interface PowerMeter {
    /** Its name beside every number of joules: {@code measured: NAME}. */
    String name();

    /**
     * What it shows now; null if nothing.
     *
     * @throws IOException it can't be read now, which is the same as null
     */
    Sample read() throws IOException;

    /**
     * Milliseconds between two readings, at least 10. Joules that change less often than every 200 ms are
     * reported, and decisions are made by the model.
     */
    default int intervalMillis() {
        return 100;
    }

    /** What a meter shows. */
    final class Sample {
        private interface Teller {
            void tell(long client);
        }

        private final Teller teller;

        private Sample(Teller teller) {
            this.teller = teller;
        }

        /** Joules used since any fixed moment. */
        public static Sample joules(double joules) {
            return new Sample(client -> Native.setJoules(client, joules));
        }

        /** Watts at this moment. */
        public static Sample watts(double watts) {
            return new Sample(client -> Native.setWatts(client, watts));
        }

        /**
         * What Android's {@code BatteryManager} tells; the best of it counts: the energy counter, else current
         * times voltage, else charge. While the battery is charged it says nothing about what is used.
         *
         * @param currentNow {@code BATTERY_PROPERTY_CURRENT_NOW}
         * @param chargeCounter {@code BATTERY_PROPERTY_CHARGE_COUNTER}
         * @param energyCounter {@code BATTERY_PROPERTY_ENERGY_COUNTER}
         * @param millivolts {@code EXTRA_VOLTAGE} of {@code ACTION_BATTERY_CHANGED}
         * @param charging whether {@code BatteryManager.isCharging()}
         */
        public static Sample battery(
                long currentNow, long chargeCounter, long energyCounter, long millivolts, boolean charging) {
            return new Sample(client ->
                    Native.setBattery(client, currentNow, chargeCounter, energyCounter, millivolts, charging));
        }

        void tell(long client) {
            teller.tell(client);
        }
    }
}
