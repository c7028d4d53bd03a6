package io.pelton.example

import android.content.Context
import android.content.Intent
import android.content.IntentFilter
import android.os.BatteryManager
import io.pelton.PowerMeter

/** What the device draws from its battery. Nothing is known while it is charged. */
class BatteryMeter(private val context: Context) : PowerMeter {
    private val battery = context.getSystemService(Context.BATTERY_SERVICE) as BatteryManager

    override fun name(): String = "battery"

    /** Fuel gauges change several times a minute at best: the model decides meanwhile. */
    override fun intervalMillis(): Int = 1_000

    override fun read(): PowerMeter.Sample {
        // A sticky broadcast: no receiver is registered.
        val state = context.registerReceiver(null, IntentFilter(Intent.ACTION_BATTERY_CHANGED))
        val millivolts = state?.getIntExtra(BatteryManager.EXTRA_VOLTAGE, 0) ?: 0
        return PowerMeter.Sample.battery(
            battery.getLongProperty(BatteryManager.BATTERY_PROPERTY_CURRENT_NOW),
            battery.getLongProperty(BatteryManager.BATTERY_PROPERTY_CHARGE_COUNTER),
            battery.getLongProperty(BatteryManager.BATTERY_PROPERTY_ENERGY_COUNTER),
            millivolts.toLong(),
            battery.isCharging,
        )
    }
}
