package io.pelton;

/** Something that may have to hold for a download to move: see {@link PeltonClient#setConstraints}. */
public enum Constraint {
    /** The network costs nothing a byte. */
    UNMETERED,
    /** The device is being charged. */
    CHARGING
}
