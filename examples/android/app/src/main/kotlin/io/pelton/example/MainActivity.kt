package io.pelton.example

import android.app.Activity
import android.os.Bundle
import android.widget.Button
import android.widget.LinearLayout

/** Two buttons: begin a sync, and stop it. */
class MainActivity : Activity() {
    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val column = LinearLayout(this)
        column.orientation = LinearLayout.VERTICAL
        column.addView(button("Sync") { SyncWorker.enqueue(this, "https://example.org/data/") })
        column.addView(button("Stop") { SyncWorker.cancel(this) })
        setContentView(column)
    }

    private fun button(label: String, act: () -> Unit): Button {
        val button = Button(this)
        button.text = label
        button.setOnClickListener { act() }
        return button
    }
}
